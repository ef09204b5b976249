//go:build linux && (amd64 || arm64 || arm)

package faults

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"edge/internal/broker/brokertest"
	"edge/test/harness"
)

// beSupervised holds a file descriptor. The test program sends a seccomp listener
// through it, for the calls of supervisedCalls, and then becomes edge by exec.
const beSupervised = "EDGE_TEST_SUPERVISED"

// supervisedCalls are the calls that change a file or write to a socket.
var supervisedCalls = map[int32]string{
	unix.SYS_PWRITE64: "pwrite", unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync",
	unix.SYS_RENAMEAT: "rename", unix.SYS_RENAMEAT2: "rename", unix.SYS_LINKAT: "link", unix.SYS_UNLINKAT: "unlink", unix.SYS_WRITE: "write",
}

// operation is a system call that a supervised daemon is about to make.
type operation struct {
	name string
	path string // of the file, or of the one that is renamed, linked or removed; of a socket, "socket:[…]"
	to   string // new name
	data []byte // that is written
	at   int64  // where; the new length of a truncated file
}

// decision is the test's decision about an operation.
type decision struct {
	errno syscall.Errno // 0: it is made
	kill  bool          // the daemon is killed before it
}

// supervised starts an edge whose operations wait for decide, which is called
// for one after the other. It skips the test where the kernel does not offer that.
//
// Source: seccomp_unotify(2).
func supervised(t *testing.T, config string, decide func(operation) decision) *harness.Daemon {
	t.Helper()
	if len(harness.Emulator) > 0 {
		t.Skipf("NOT EMULATED: %s cannot let a test decide about system calls", harness.Emulator[0])
	}
	if runtime.GOARCH == "arm" {
		t.Skip("NOT TESTED: where a register has 32 bits, system calls have other arguments than these tests read")
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "supervisor"), os.NewFile(uintptr(pair[1]), "supervised")
	d := harness.StartWith(t, config, func(cmd *exec.Cmd) {
		cmd.Path, cmd.Args = os.Args[0], append([]string{os.Args[0]}, cmd.Args...)
		cmd.ExtraFiles = []*os.File{theirs}
		cmd.Env = append(cmd.Env, beSupervised+"=3", "GODEBUG=asyncpreemptoff=1")
	})
	theirs.Close()
	defer ours.Close()
	listener, err := receiveDescriptor(ours)
	if err != nil {
		d.Kill()
		brokertest.Missing(t, "this kernel does not let a test decide about system calls: "+err.Error())
	}
	var watch sync.WaitGroup
	watch.Go(func() {
		if err := supervise(listener, d.Process, decide); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		d.Process.Kill()
		watch.Wait()
	})
	return d
}

// superviseMe passes the decisions about this process on, and makes it the program
// of its arguments. It returns only if that fails.
func superviseMe(descriptor string) error {
	fd, err := strconv.Atoi(descriptor)
	if err != nil {
		return err
	}
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // the call's number
	for number := range supervisedCalls {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(number), Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread() // both calls concern the thread; the second then all of them
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC |
		unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	if err := unix.Sendmsg(fd, []byte{1}, unix.UnixRights(int(listener)), nil, 0); err != nil {
		return err
	}
	if err := errors.Join(unix.Close(int(listener)), unix.Close(fd)); err != nil {
		return err
	}
	return unix.Exec(os.Args[1], os.Args[1:], os.Environ())
}

func receiveDescriptor(from *os.File) (int, error) {
	conn, err := net.FileConn(from)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(brokertest.Patience)); err != nil {
		return 0, err
	}
	data, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(data, rights)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) == 0 {
		return 0, errors.Join(err, errors.New("it ended, or sent no descriptor"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, errors.Join(err, errors.New("no descriptor"))
	}
	return fds[0], nil
}

// notification is struct seccomp_notif, answer struct seccomp_notif_resp.
type (
	notification struct {
		id      uint64
		thread  uint32
		flags   uint32
		number  int32
		arch    uint32
		pointer uint64
		args    [6]uint64
	}
	answer struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
)

const goOn = 1 // SECCOMP_USER_NOTIF_FLAG_CONTINUE

// supervise decides until the process is gone.
func supervise(listener int, process *os.Process, decide func(operation) decision) error {
	defer unix.Close(listener)
	for {
		poll := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return err
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			return nil // no process has the filter any more
		}
		var n notification
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
			continue // the process was killed
		}
		op, err := read(&n)
		v := decision{}
		if err == nil { // else the process was killed
			v = decide(op)
		}
		if v.kill {
			if err := process.Kill(); err != nil {
				return err
			}
			continue // the call is never made
		}
		a := answer{id: n.id, flags: goOn}
		if v.errno != 0 {
			a = answer{id: n.id, errno: -int32(v.errno)}
		}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a))); errno != 0 && errno != unix.ENOENT {
			return fmt.Errorf("answer a system call: %w", errno)
		}
	}
}

// read takes a notification apart.
func read(n *notification) (operation, error) {
	op := operation{name: supervisedCalls[n.number]}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.thread))
	if err != nil {
		return op, err
	}
	defer memory.Close()
	text := func(at uint64) string {
		b := make([]byte, unix.PathMax)
		n, _ := memory.ReadAt(b, int64(at)) // up to the end of its page at least
		s, _, _ := strings.Cut(string(b[:n]), "\x00")
		return s
	}
	switch op.name {
	case "unlink":
		op.path = text(n.args[1])
		return op, nil
	case "rename", "link":
		op.path, op.to = text(n.args[1]), text(n.args[3])
		return op, nil
	}
	if op.path, err = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.thread, int32(n.args[0]))); err != nil {
		return op, err
	}
	switch op.name {
	case "ftruncate":
		op.at = int64(n.args[1])
	case "pwrite", "write":
		op.data = make([]byte, n.args[2])
		if _, err := memory.ReadAt(op.data, int64(n.args[1])); err != nil {
			return op, err
		}
		op.at = int64(n.args[3])
	}
	return op, nil
}
