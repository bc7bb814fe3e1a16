package openai

import (
	"testing"

	"hearth/internal/wire/wiretest"
)

func TestNames(t *testing.T) { wiretest.Names(t) }
