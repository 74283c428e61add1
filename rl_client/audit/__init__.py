"""Grading a data set's own labelled submissions: how often its tests tell right programs from wrong ones."""
