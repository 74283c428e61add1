// Does what the input's first word says: the ends that a testlib checker can come to.
#include <bits/stdc++.h>

#include "testlib.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char *argv[]) {
    registerTestlibCmd(argc, argv);
    std::string deed = inf.readToken();
    if (deed == "integer") {
        // Of the answer first: what is wrong with it is the jury's fault.
        int wanted = ans.readInt(), got = ouf.readInt();
        if (got != wanted) quitf(_wa, "%d is not %d", got, wanted);
        quitf(_ok, "the same");
    }
    if (deed == "points") quitp(atof(inf.readToken().c_str()), "for the effort");
    if (deed == "partly") quitf(_pc(inf.readInt()), "some of it");
    if (deed == "fail") quitf(_fail, "the answer is out of its mind");
    if (deed == "nothing") return 0;
    if (deed == "throw") throw std::runtime_error("unforeseen");
    if (deed == "segfault") raise(SIGSEGV);
    if (deed == "exit") _exit(inf.readInt());
    if (deed == "loop") for (volatile int i = 0;; i++) {}
    if (deed == "sleep") for (;;) pause();
    if (deed == "allocate") {
        std::vector<std::string> hoard;
        for (;;) hoard.push_back(std::string(16 << 20, 'x'));
    }
    if (deed == "flood") {
        for (int i = 0; i < 100; i++) fprintf(stderr, "%s", std::string(1 << 20, 'x').c_str());
        quitf(_ok, "at last");
    }
    if (deed == "fork") {
        for (int i = 0; i < 1000; i++)
            if (fork() == 0) for (;;) pause();
        quitf(_ok, "surrounded");
    }
    if (deed == "write") {
        // What it was given is not to be changed, by descriptor or by path.
        for (int i = 1; i <= 3; i++)
            for (int fd : {3 + i, open(argv[i], O_WRONLY), open(argv[i], O_RDWR)})
                if (write(fd, "x", 1) > 0 || ftruncate(fd, 0) == 0) quitf(_wa, "could change %s", argv[i]);
        if (ouf.readToken() != "x" || ans.readToken() != "y") quitf(_wa, "something has changed");
        quitf(_ok, "read-only");
    }
    if (deed == "look") {
        std::set<std::string> names;
        for (auto directory : {"/prog", "/box", "/tmp"})
            for (auto &entry : std::filesystem::directory_iterator(directory)) names.insert(entry.path());
        for (auto &entry : std::filesystem::directory_iterator("/proc")) {
            std::string name = entry.path().filename();
            if (isdigit(name[0])) names.insert("process " + name);
        }
        std::string seen = ouf.readToken() + ":";
        for (auto &name : names) if (name != "process " + std::to_string(getpid())) seen += name + ";";
        quitf(_ok, "%s", seen.c_str());
    }
    quitf(_fail, "no such deed: %s", deed.c_str());
}
