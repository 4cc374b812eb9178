"""The measured scores beside the paper's: tables and figures in this project's documents, made of stored results.

    python -m score_rl.paper.evidence           rewrite the tables and figures of the checkout in this folder
    python -m score_rl.paper.evidence --check   change nothing; exit code 1 where one is out of date

Nothing is trained, and no number is typed in: each links to the file that it was read from.

    reading      stored results, as the records that tables and claims are made of
    records      those records
    wanted       which results the comparison is to hold, and which of them are missing
    cells        numbers, links and tables in Markdown
    tables       the tables, by name
    figures      the figures, by name
    claims       the paper's claims, each with the rule that decides whether it holds here
    documents    tables in documents
"""
