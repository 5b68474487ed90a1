"""An exported model behind HTTP: an API, a page for people, limits on both, and metrics.

What a request passes on its way: `uploads` reads its body into memory, `image_uploads` decodes it
in a few threads, `batching` runs it together with others, `schemas` puts the outputs into JSON.
Where that is asked for, `stream_adapter` adapts to the last images.
`service` is that way from end to end; `app` binds it to routes, and `server` to a port. Neither
torch nor SciPy is loaded.
"""

from rightly.serving.app import make_app as make_app
from rightly.serving.limits import Limits as Limits
from rightly.serving.server import open_socket as open_socket
from rightly.serving.server import run_app as run_app
