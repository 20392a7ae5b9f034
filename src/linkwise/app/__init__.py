"""The annotation page: questions about pairs of samples, answered in a browser.

``linkwise serve data.csv`` starts it. The modules, each of which imports only those above it::

    events       Event: one line of the log
    ledger       Ledger: what the events amount to
    project      Project: the SQLite file that keeps the events
    conflicts    Evidence: answers that can hold together, and the chains that prove others wrong
    items        Items: what is shown of a sample, by its kind
    matching     clusters keep their numbers from one clustering to the next
    samples      Samples: rows of numbers, without the libraries that cluster them
    layout       two coordinates of each sample
    engine       Engine: clustering and questions, in threads of their own
    first        clusters and questions in a moment
    wire         messages between the server and the process that clusters
    apart        Apart: an engine in a process of its own
    solvers      what clusters and asks: sessions, with all their libraries
    worker       the process that clusters
    feed         Feed: news for open pages
    settle       answered samples are put where the answers say, at once
    terminal     ProjectSession: ``linkwise ask`` on the same project
    room         Room: one project, opened by all who answer
    views        what the page is told, as plain values
    requests     what the page sends, checked
    actions      resolving conflicts, clusters, selections
    imports      pairs, labels and old sessions become events
    exports      labels, pairs, the log and a script, as files
    token        the secret of a project, kept for its tabs
    security     who may talk to the server
    server       the routes
    listen       the server on a port
"""
