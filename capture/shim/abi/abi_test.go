package abi

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestSonames(t *testing.T) {
	for soname, want := range map[string]string{
		"libmpi.so.40":             OpenMPI,
		"libmpi_mpifh.so.40":       OpenMPI,
		"libmpi_usempif08.so.40":   OpenMPI,
		"libmpi.so.12":             MPICH, // MPICH, Intel MPI, MVAPICH, cray-mpich-abi
		"libmpich.so.12":           MPICH, // Debian
		"libmpifort.so.12":         MPICH,
		"libmpichfort.so.12":       MPICH,
		"libmpi_cray.so.12":        MPICH,
		"libmpi_gnu.so.12":         MPICH,
		"libmpi_gnu_91.so.12":      MPICH,
		"libmpi_gnu_123.so.12":     MPICH,
		"libmpi_intel.so.12":       MPICH,
		"libmpi_nvidia.so.12":      MPICH,
		"libmpi_amd.so.12":         MPICH,
		"libmpi_aocc.so.12":        MPICH,
		"libmpifort_cray.so.12":    MPICH,
		"libmpifort_gnu_112.so.12": MPICH,
		"libmpifort_nvidia.so.12":  MPICH,
		"libmpi.so.12.0.0":         "",
		"libmpi.so.20":             "",
		"libmpi_cray.so.3":         "",
		"libmpich_gnu_82.so.3":     "", // Cray XC
		"libmpi_gtl_cuda.so.0":     "", // beside Cray MPICH
		"libmpi_cxx.so.40":         "",
		"libmpi_abi.so.0":          "",
		"libmpi_abi.so.1":          MPICH,
		"libc.so.6":                "",
		"":                         "", // of a damaged program
	} {
		if got := LibraryOf(soname); got != want {
			t.Errorf("%s belongs to %q, want %q", soname, got, want)
		}
		other := map[string]bool{"libmpi.so.12.0.0": true, "libmpi.so.20": true, "libmpi_cray.so.3": true,
			"libmpich_gnu_82.so.3": true, "libmpi_abi.so.0": true}[soname]
		if got := IsUnknown(soname); got != other {
			t.Errorf("%s is of another MPI library: %v, want %v", soname, got, other)
		}
	}
	for _, f := range families {
		for _, soname := range f.examples {
			if got := LibraryOf(soname); got != f.library {
				t.Errorf("docs/COMPAT.md says that %s is of %s, but it belongs to %q", soname, f.library, got)
			}
		}
	}
	if !HasC(MPICH, "libmpi_gnu_91.so.12") || HasC(MPICH, "libmpifort_gnu_91.so.12") || HasC(MPICH, "libmpi.so.40") {
		t.Error("libraries with the functions of C are mistaken")
	}
}

func TestOf(t *testing.T) {
	for major, want := range map[int][2]string{
		0: {"openmpi-4", "mpich-3"},
		2: {"openmpi-4", "mpich-3"},
		4: {"openmpi-4", "mpich-4"},
		6: {"openmpi-5", "mpich-4"},
	} {
		if o, m := ForVersion(OpenMPI, major).Name, ForVersion(MPICH, major).Name; o != want[0] || m != want[1] {
			t.Errorf("version %d: %s, %s; want %s", major, o, m, want)
		}
	}
}

func TestForFile(t *testing.T) {
	for file, want := range map[string]string{"/opt/lib/libmpi_abi.so.1": "mpiabi-1", "/opt/lib/libmpi.so.12": "mpich-4"} {
		if got := ForFile(MPICH, file, 5).Name; got != want {
			t.Errorf("%s has the ABI %s, want %s", file, got, want)
		}
	}
}

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What the table says of versions is what the requirements of tests, the scripts and the tables of their outcome say.
func TestVersionsAreThoseOfTestsAndScripts(t *testing.T) {
	install := read(t, "docs/how-to/install.md")
	others := read(t, string(TryOthers))
	defaults := regexp.MustCompile(`set -- (.*)\n`).FindStringSubmatch(read(t, string(TryLibraries)))
	if defaults == nil {
		t.Fatalf("%s has no versions", TryLibraries)
	}
	var wanted []string
	for _, v := range Versions {
		name := strings.ToLower(strings.ReplaceAll(v.Library, " ", ""))
		release := regexp.MustCompile(`(^|\s)` + name + `==` + regexp.QuoteMeta(v.Version) + `(\.post[0-9]+)?(\s|$)`)
		if v.Requirements != "" && !release.MatchString(read(t, "packaging/"+v.Requirements)) {
			t.Errorf("packaging/%s does not name %s %s", v.Requirements, v.Library, v.Version)
		}
		if v.From == "PyPI" {
			wanted = append(wanted, name+"=="+v.Version)
			if !release.MatchString(defaults[1]) {
				t.Errorf("%s does not try %s %s", TryLibraries, v.Library, v.Version)
			}
		}
		number, _, _ := strings.Cut(v.From, ",")
		if _, suite, debian := strings.Cut(number, "Debian "); debian && v.Library == "Open MPI" && !regexp.MustCompile(
			`\| Debian `+suite+`\.[0-9]+ \| [0-9.]+ \| `+regexp.QuoteMeta(v.Version)+` \|`).MatchString(install) {
			t.Errorf("the table of %s in docs/how-to/install.md has no Open MPI %s of %s", TryRelease, v.Version, v.From)
		}
		if v.Brought == TryOthers {
			wheel := map[string]string{"Intel MPI": "impi-rt==", "MPICH on arm64": "mpich=="}[v.Library]
			if wheel == "" || !strings.Contains(others, wheel+v.Version) {
				t.Errorf("%s does not try %s %s", TryOthers, v.Library, v.Version)
			}
		}
	}
	if n := len(strings.Fields(defaults[1])); n != len(wanted) {
		t.Errorf("%s tries %d versions, of which the table has %d: %q", TryLibraries, n, len(wanted), wanted)
	}
}

// A version has the ABI of its major version; those of Intel MPI have years.
func TestABIsOfVersions(t *testing.T) {
	for _, v := range Versions {
		a := named(v.ABI)
		major := int(v.Version[0] - '0')
		if want := ForVersion(a.Library, major); !a.Standard && v.Library != "Intel MPI" && want.Name != v.ABI {
			t.Errorf("%s %s has the ABI %s, want %s", v.Library, v.Version, v.ABI, want.Name)
		}
	}
}
