package disk

import (
	"math/rand/v2"
	"strconv"
)

// randomText is the end of a temporary file's name.
func randomText() string { return strconv.FormatUint(rand.Uint64(), 36) }
