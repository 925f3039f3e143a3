"""Use cases of single sign-on: settings, sign-in and enforcement."""
