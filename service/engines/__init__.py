"""Who grades: engines, and the workers that they hand jobs to.

    base        the protocol of an engine, and the values that go in and come out
    prepare     the engine for this host, from the settings

what any engine can use:

    admission   how much may wait, and draining
    pending     work whose caller waits in this process
    answers     what a piece of work came to, between a worker and an engine
    setup       what a worker is told at its start
    bench       a worker's judge, and one piece of work after another

the in-process engine:

    local       jobs from the queue to workers, and what becomes of those whose worker dies
    queue       who waits for whom
    workforce   a worker for each core, started anew where it dies
    process     one worker's process, from outside
    worker      the same from inside: its main program
    frames      how the two speak
"""
