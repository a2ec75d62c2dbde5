"""The command line: words of a shell become a call of a verb, and its result text or JSON.

Start with `catalog.VERBS` and `command.VerbCommand`.
"""

import os

# Before numpy is loaded: waiting for its second thread costs each command a tenth of a second,
# and sums over several threads would end in other last digits on another machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
