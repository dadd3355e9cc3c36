package dimemas

import (
	"fmt"
	"math/big"
	"regexp"
	"sync"
)

const (
	psPerSecond = 1_000_000_000_000
	psPerNs     = 1000
	// maxPs, 53 days, is the longest burst; the sum of two does not overflow.
	maxPs = 1<<62 - 1
)

// parseSeconds parses a duration in seconds and rounds it, half up, to picoseconds.
func parseSeconds(b []byte) (int64, error) {
	if ps, ok := plainSeconds(b); ok {
		return ps, nil
	}
	return anySeconds(b)
}

// plainSeconds parses digits with at most twelve decimals, as Dimemas' own tools write them.
func plainSeconds(b []byte) (int64, bool) {
	var v int64
	i, digits := 0, 0
	for ; i < len(b) && b[i] >= '0' && b[i] <= '9' && i < 6; i++ {
		v, digits = v*10+int64(b[i]-'0'), digits+1
	}
	scale := int64(psPerSecond)
	if i < len(b) && b[i] == '.' {
		for i++; i < len(b) && b[i] >= '0' && b[i] <= '9' && scale > 1; i++ {
			v, digits, scale = v*10+int64(b[i]-'0'), digits+1, scale/10
		}
	}
	return v * scale, i == len(b) && digits > 0
}

// secondsText matches any decimal number; its limited length limits the work on it. The limits also make it slow to
// compile, so it is compiled only when needed and does not delay the start of commq.
var secondsText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^ *[+]?[0-9]{0,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,3})?$`)
})

func anySeconds(b []byte) (int64, error) {
	if secondsText().Match(b) {
		for len(b) > 0 && (b[0] == ' ' || b[0] == '+') {
			b = b[1:]
		}
		if x, ok := new(big.Rat).SetString(string(b)); ok {
			x.Mul(x, big.NewRat(psPerSecond, 1))
			x.Add(x, big.NewRat(1, 2))
			ps := new(big.Int).Quo(x.Num(), x.Denom())
			if ps.Cmp(big.NewInt(maxPs)) <= 0 {
				return ps.Int64(), nil
			}
		}
	}
	return 0, fmt.Errorf("the duration is %s; want seconds, a decimal number from 0 to 4611686", quoted(b))
}
