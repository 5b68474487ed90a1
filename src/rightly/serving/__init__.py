"""A deployed model behind HTTP: an API, a page for people, limits on both, and counters.

What a request passes on its way: `uploads` reads its body into memory, `pictures` decodes it in a
few threads, `batching` runs it together with others, `answers` puts what was said into JSON.
`service` is that way from end to end; `app` binds it to routes, and `running` to a port.
"""

from rightly.serving.app import make_app as make_app
from rightly.serving.limits import Limits as Limits
from rightly.serving.server import listen as listen
from rightly.serving.server import run as run
