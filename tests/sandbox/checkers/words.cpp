// Tokens of the answer against those of the output, in order.
#include "testlib.h"

int main(int argc, char *argv[]) {
    registerTestlibCmd(argc, argv);
    int count = 0;
    while (!ans.seekEof()) {
        std::string wanted = ans.readToken();
        std::string got = ouf.readToken();
        count++;
        if (wanted != got) quitf(_wa, "token %d: expected '%s', found '%s'", count, wanted.c_str(), got.c_str());
    }
    quitf(_ok, "%d tokens", count);
}
