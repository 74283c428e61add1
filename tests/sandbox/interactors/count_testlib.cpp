// The checker of guess_testlib.cpp: at most as many guesses as the answer says.
#include "testlib.h"

int main(int argc, char **argv) {
    registerTestlibCmd(argc, argv);
    int secret = inf.readInt(), allowed = ans.readInt(), guesses = ouf.readInt();
    if (secret < 1) quitf(_fail, "no such number");
    if (guesses > allowed) quitf(_wa, "%d guesses, %d allowed", guesses, allowed);
    quitf(_ok, "%d guesses", guesses);
}
