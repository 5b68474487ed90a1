"""The paper's experiments: setups, the run that fills the long table, tables and analyses."""
