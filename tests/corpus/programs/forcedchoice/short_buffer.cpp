#include <cstdio>
#include <cstdlib>
#include <cstring>

int main() {
    char line[256];
    int n, p, s;
    fgets(line, sizeof(line), stdin);
    sscanf(line, "%d %d %d", &n, &p, &s);
    for (int i = 0; i < s; i++) {
        fgets(line, sizeof(line), stdin);
        int m = atoi(strtok(line, " \n"));
        bool keep = false;
        for (int j = 0; j < m; j++) {
            int card = atoi(strtok(NULL, " \n"));
            if (card == p) keep = true;
        }
        puts(keep ? "KEEP" : "REMOVE");
    }
    return 0;
}
