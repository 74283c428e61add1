"""What programs have come to before, so that the same program on the same problem need not run again.

Workers alone look and write, each for what it has graded itself. A client sees an answer that is its own in all but the
figures, and that it came from here.

    naming    what a result depends on, as the key that it is kept under
    settled   which results another run would come to as well: others are not kept
    keeping   what one grade asks of all this
    cache     keeping and finding results, whatever becomes of the store of entries
    on_disk   entries in a file that all workers of a host share; on Redis: `service.engines.rq.shared`
"""
