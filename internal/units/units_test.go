package units

import (
	"math"
	"testing"
)

func TestUnits(t *testing.T) {
	for got, want := range map[string]string{
		Comma(617856):              "617,856",
		Count(1, "call"):           "1 call",
		Count(0, "call"):           "0 calls",
		Count(4097, "call"):        "4,097 calls",
		Bytes(0):                   "0 B",
		Bytes(1023):                "1,023 B",
		Bytes(4097):                "4,097 B",
		Bytes(9_999):               "9,999 B",
		Bytes(10_000):              "10 kB",
		Bytes(65_536):              "65.5 kB",
		Bytes(999_499):             "999 kB",
		Bytes(999_500):             "1.00 MB",
		Bytes(195_150_756):         "195 MB",
		Bytes(51_169_708_800):      "51.2 GB",
		Bytes(-195_150_756):        "-195 MB",
		Bytes(math.MaxInt64):       "9.22 EB",
		ExactBytes(1):              "1 byte",
		ExactBytes(4097):           "4,097 bytes",
		ExactBytes(186_395_648):    "186,395,648 bytes (186 MB)",
		Duration(0):                "0 ns",
		Duration(999):              "999 ns",
		Duration(13_290):           "13.3 us",
		Duration(999_499):          "999 us",
		Duration(999_960):          "1.00 ms",
		Duration(1_263_456):        "1.26 ms",
		Duration(-1_263_456):       "-1.26 ms",
		Duration(7_500_000_000_00): "750 s",
		Duration(1_753_455_155):    "1.75 s",
		Duration(4e12):             "4,000 s",
		Rate(3_333_531_758):        "3.33 GB/s",
		Rate(12):                   "12 B/s",
		Percent(0.38):              "38 %",
		Percent(0.07):              "7 %",
		Percent(0.31513):           "31.5 %",
		Percent(1):                 "100 %",
		Percent(0):                 "0 %",
		Percent(0.99997):           ">99.9 %",
		Percent(0.0000543):         "0.005 %",
		Percent(0.0000001):         "<0.001 %",
		Percent(6.0095):            "601 %",
		Percent(math.NaN()):        "NaN %",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNumber: a number for people has no exponent that looks like a program's.
func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 3: "3", -4097: "-4,097", 0.5: "0.5", 0.50012: "0.500",
		99999.96: "100,000", 999.96: "1,000", 99.96: "100", 1234.5678: "1,235", 12.34567: "12.3", 9.996: "10.0",
		0.000123456: "0.000123", 0.000054: "0.000054", 5.4e-7: "5.40×10^-7", 1234567.891: "1,234,568",
		1e15: "1.00×10^15", -9.123456789e20: "-9.12×10^20", -0.25: "-0.25", math.Copysign(0, -1): "0",
		math.Inf(1): "+Inf", 100: "100", 1e5: "100,000"} {
		if got := Number(x); got != want {
			t.Errorf("Number(%v) = %q; want %q", x, got, want)
		}
	}
}
