"""Standard output holds the result and nothing that a cluster says."""

import sys
import threading

from calibrant.cli.command import cluster_speaks_on_stderr


def test_a_thread_that_prints_while_the_parts_run_does_not_reach_standard_output(capsys):
    with cluster_speaks_on_stderr():
        speaker = threading.Thread(target=print, args=("(raylet) a node was lost",))
        speaker.start()
        speaker.join()
    sys.stdout.write("{}\n")
    heard = capsys.readouterr()
    assert heard.out == "{}\n"
    assert heard.err == "(raylet) a node was lost\n"
