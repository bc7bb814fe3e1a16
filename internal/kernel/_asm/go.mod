module hearth/internal/kernel/_asm

go 1.26.0
