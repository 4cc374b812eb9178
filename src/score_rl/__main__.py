"""`python -m score_rl` is the command `score`, for where the command is not on the path."""

from score_rl.cli import main

if __name__ == "__main__":
    main()
