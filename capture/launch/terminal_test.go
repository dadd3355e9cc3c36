package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/commq/commq/internal/testenv"
)

// TestInForeground asks processes whose input is not a terminal: Ctrl-C reaches those in the foreground of their
// controlling terminal, and no others.
func TestInForeground(t *testing.T) {
	const yes = 77
	if os.Getenv("COMMQ_TEST_FOREGROUND") != "" {
		if inForeground() {
			os.Exit(yes)
		}
		os.Exit(0)
	}
	terminal := openTerminal(t)
	for _, c := range []struct {
		how  *syscall.SysProcAttr
		want int
	}{
		{&syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}, yes},
		{&syscall.SysProcAttr{Setsid: true}, 0},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestInForeground$")
		cmd.Env = append(os.Environ(), "COMMQ_TEST_FOREGROUND=1")
		cmd.SysProcAttr, cmd.ExtraFiles = c.how, []*os.File{terminal}
		status, err := exitStatus(cmd.Run())
		if err != nil || status != c.want {
			t.Errorf("%+v: status %d, %v; want %d", c.how, status, err, c.want)
		}
	}
}

// openTerminal opens a terminal that no process has yet.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		testenv.Skip(t, fmt.Sprintf("no terminals here: %v", err))
	}
	t.Cleanup(func() { master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return terminal
}
