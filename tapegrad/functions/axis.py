"""Functions along dimensions: written from rows by `python -m tests.public_names`."""

from tapegrad.functions.row_functions import of_reduction, of_rows
from tapegrad.ops import reduce

logsumexp = of_reduction(reduce.logsumexp, __name__)
softmax = of_rows(reduce.softmax, __name__)
log_softmax = of_rows(reduce.log_softmax, __name__)
