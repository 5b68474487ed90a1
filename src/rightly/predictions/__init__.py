"""Raw outputs of one classifier on n samples, and the files they are kept in."""

from rightly.predictions.files import load as load
from rightly.predictions.files import save as save
from rightly.predictions.files import source_of as source_of
from rightly.predictions.predictions import Predictions as Predictions
from rightly.predictions.predictions import checked_labels as checked_labels
from rightly.predictions.predictions import concatenate as concatenate
