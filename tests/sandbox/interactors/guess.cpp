// A Kattis interactor: the program guesses a number between 1 and 1,000,000 and hears "<", ">" or "=".
// Input: the number. Answer: how many guesses there may be. The flag "tell" has it say that number first.
#include <fstream>
#include <iostream>
#include <string>

int main(int argc, char **argv) {
    long secret, allowed, guess;
    std::ifstream(argv[1]) >> secret;
    std::ifstream(argv[2]) >> allowed;
    std::ofstream said(std::string(argv[3]) + "judgemessage.txt");
    if (argc > 4 && argv[4] == std::string("tell")) std::cout << allowed << std::endl;
    for (long number = 1; std::cin >> guess; number++) {
        if (guess == secret) {
            std::cout << "=" << std::endl;
            said << "found after " << number << std::endl;
            return 42;
        }
        if (number == allowed) {
            said << "too many guesses" << std::endl;
            return 43;
        }
        std::cout << (secret < guess ? "<" : ">") << std::endl;
    }
    said << "no more guesses" << std::endl;
    return 43;
}
