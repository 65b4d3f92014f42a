"""A program that is killed after a while: killed.py AFTER_S SIGNAL COMMAND...

Where the command started another program, that one is killed. See tests/test_drivers_die.py.
"""

import os
import subprocess
import sys
import time

after_s, number, *command = sys.argv[1:]
main = os.getpid()
if os.fork():
    os.execv(command[0], command)
time.sleep(float(after_s))
children = subprocess.run(["pgrep", "-P", str(main)], stdout=subprocess.PIPE).stdout.split()
started = [int(pid) for pid in children if int(pid) != os.getpid()]
os.kill(started[0] if started else main, int(number))
