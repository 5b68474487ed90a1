"""Raw outputs of one classifier on n samples, and the files they are kept in."""

from rightly.predictions.concatenation import concatenate as concatenate
from rightly.predictions.files import load as load
from rightly.predictions.files import read_source as read_source
from rightly.predictions.files import save as save
from rightly.predictions.predictions import Predictions as Predictions
from rightly.predictions.predictions import check_labels as check_labels
