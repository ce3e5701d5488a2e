"""`python -m t2t`, the same as the command `t2t`."""

import sys

from t2t import cli

if __name__ == "__main__":
    sys.exit(cli.main())
