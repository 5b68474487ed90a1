"""One page that says whether a model's confidence can be trusted, and where not.

`report` makes it from data; `render` turns a Study, plain arrays and results, into one HTML file
that needs nothing else. Needs jinja2: pip install 'rightly[report]'.
"""
