"""One page that says whether a model's confidence can be trusted, and where not.

`write` turns a Study, plain arrays and rows, into one HTML file that needs nothing else. Needs
jinja2: pip install 'rightly[report]'.
"""

from rightly.report.page import write as write
from rightly.report.study import Example as Example
from rightly.report.study import Made as Made
from rightly.report.study import Study as Study
from rightly.report.study import TestSet as TestSet
