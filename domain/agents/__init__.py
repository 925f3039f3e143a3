"""Operations that AI agents may call."""
