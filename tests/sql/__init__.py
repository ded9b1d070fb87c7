"""Tests of the SQL front end; those that compare with Spark are marked so."""
