"""A queue of trainings that any machine with a GPU works off: what is missing, the most valuable first.

    python -m benchmarks.training.queue --minutes 28          work for so long
    python -m benchmarks.training.queue --dry-run             show the plan and train nothing

`wanted.csv` is the table of what is wanted; a line more is a question more. Open the modules in this order:

    wanted.py      the table, and which of its runs are not stored yet
    fleets.py      missing runs become jobs: fleets that train as one program
    speeds.py      how long a job takes, from what was measured
    plan.py        the order of value per minute
    data.py        the data sets, collected where they are missing
    one.py         a process that trains one job and stores its results
    packing.py     several such processes side by side on one GPU, until time is up
    account.py     who used the GPU for how long
    parcels.py     results and unfinished jobs in a few files of limited size, to go on elsewhere
"""
