"""Sessions: cells of a host's in which clients run commands, kept by one process of that host's.

    base      what is asked of them, wherever they live
    live      one that is open: its commands and files, and who waits for them
    terminal  a command of one on a pseudo-terminal
    keeper    all that are open here: how many there may be, whose they are, and when they end
    asks      the same, asked and answered in messages: of a keeper elsewhere
    hosted    who answers them there

No worker has a part in them: they run beside the grades, nicer than these, in processes and control groups of
their own.
"""
