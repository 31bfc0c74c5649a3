"""Operations that commands, pages and the operator share: above the wiring, below the code that parses and prints."""
