"""What the exit code of `hermes` means.

0    answered
1    something you must change: a setting, a file, a name, a full disk
2    the command line could not be understood
3    the model ended without saying anything
4    the provider or the model declined to answer
5    a limit on calls, money, tokens or time was reached first
6    the model could not be reached, or failed
7    the turn was stopped because tools kept failing
8    another process works on the session: wait (--wait), go on in a copy (--fork), or stop it
70   a fault in Hermes itself
130  stopped by Ctrl-C or a signal
141  whoever read the output went away
"""
