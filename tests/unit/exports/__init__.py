"""Tests of the rules of exports."""
