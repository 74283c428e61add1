// The same with testlib; leaves the number of guesses for the checker, which counts them.
#include "testlib.h"

int main(int argc, char **argv) {
    registerInteraction(argc, argv);
    int secret = inf.readInt();
    for (int number = 1; number <= 100; number++) {
        int guess = ouf.readInt(1, 1000000, "guess");
        if (guess == secret) {
            std::cout << "=" << std::endl;
            tout << number << std::endl;
            quitf(_ok, "found");
        }
        std::cout << (secret < guess ? "<" : ">") << std::endl;
    }
    quitf(_wa, "too many guesses");
}
