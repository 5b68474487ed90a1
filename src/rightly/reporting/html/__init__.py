"""One page that says whether a model's confidence can be trusted, and where not.

`write` turns a Study, plain arrays and rows, into one HTML file that needs nothing else. Needs
jinja2: pip install 'rightly[report]'.
"""

from rightly.reporting.html.page import write as write
from rightly.reporting.html.study import Example as Example
from rightly.reporting.html.study import Made as Made
from rightly.reporting.html.study import Study as Study
from rightly.reporting.html.study import TestSet as TestSet
