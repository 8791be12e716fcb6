package filestore_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	"loki/internal/conversation/session/sessiontest"
	"loki/internal/llm/chat"
)

// The environment of a child process, which is this test binary: where the sessions
// are, who it is, and how many turns it appends to the session called "shared".
const (
	childDir   = "SESSION_TEST_DIR"
	childName  = "SESSION_TEST_NAME"
	childTurns = "SESSION_TEST_TURNS"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir, os.Getenv(childName), os.Getenv(childTurns)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child appends turns, each when it has got a byte on stdin or that has ended, and says
// of each that it is written.
func child(dir, name, turns string) error {
	n, err := strconv.Atoi(turns)
	if err != nil {
		return err
	}
	st, err := filestore.New(filestore.Options{Dir: dir})
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := st.OpenOrCreate(ctx, "", "shared", func() (session.Settings, error) { return session.Settings{Settings: chat.Settings{Model: "m"}}, nil })
	if err != nil {
		return err
	}
	for i := range n {
		if _, err := os.Stdin.Read(make([]byte, 1)); err != nil && err != io.EOF {
			return err
		}
		if err := s.Append(ctx, namedTurn(name, i)); err != nil {
			return err
		}
		fmt.Println(i)
	}
	return nil
}

func namedTurn(name string, i int) session.Turn {
	text := fmt.Sprintf("%s %d", name, i)
	return session.Turn{
		Role:  []chat.Message{chat.Text(chat.System, "Be brief.")},
		User:  chat.Text(chat.User, text),
		Reply: []chat.Message{chat.Text(chat.Assistant, text+strings.Repeat(".", i%500))},
	}
}

// command returns a child that is not running yet.
func command(t *testing.T, dir, name string, turns int) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childName+"="+name, childTurns+"="+strconv.Itoa(turns))
	cmd.Stderr = os.Stderr
	return cmd
}

// appended returns how many turns of each child are in the session, having checked that
// they are whole and in order.
func appended(t *testing.T, s *session.Session) map[string]int {
	t.Helper()
	next := make(map[string]int)
	list := s.Messages()
	if len(list) > 0 && list[0].Role == chat.System {
		list = list[1:]
	}
	for i := 0; i < len(list); i += 2 {
		name, _, _ := strings.Cut(list[i].Text(), " ")
		want := namedTurn(name, next[name])
		if i+1 == len(list) || list[i].Text() != want.User.Text() || list[i+1].Text() != want.Reply[0].Text() {
			t.Fatalf("message %d is %q, want turn %d of %s", i, list[i].Text(), next[name], name)
		}
		next[name]++
	}
	return next
}

func TestTwoProcessesLoseNothing(t *testing.T) {
	const turns = 500
	dir := t.TempDir()
	// Both append a turn at the same time, then the next.
	var stdin [2]io.Writer
	var stdout [2]*bufio.Scanner
	var children [2]*exec.Cmd
	for i, name := range []string{"a", "b"} {
		cmd := command(t, dir, name, turns)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stdin[i], stdout[i], children[i] = in, bufio.NewScanner(out), cmd
	}
	for range turns {
		for _, in := range stdin {
			if _, err := in.Write([]byte{0}); err != nil {
				t.Fatal(err)
			}
		}
		for _, out := range stdout {
			if !out.Scan() {
				t.Fatalf("a child has ended: %v", out.Err())
			}
		}
	}
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	s := openShared(t, dir, nil)
	if got := appended(t, s); got["a"] != turns || got["b"] != turns {
		t.Errorf("turns: %v", got)
	}
	// They have read what the other one wrote, most of the time.
	switches, last := 0, byte(0)
	for _, m := range s.Messages() {
		if first := m.Text()[0]; m.Role == chat.User && first != last {
			switches++
			last = first
		}
	}
	if switches < turns/2 {
		t.Errorf("the turns alternate only %d times", switches)
	}
}

// openShared opens the session of the children. Warnings are given to warn, nil
// expects none.
func openShared(t *testing.T, dir string, warn func(context.Context, error)) *session.Session {
	t.Helper()
	if warn == nil {
		warn = func(_ context.Context, err error) { t.Errorf("warning: %v", err) }
	}
	st := open(t, filestore.Options{Options: session.Options{Warn: warn}, Dir: dir, NoSync: true})
	s, err := st.OpenOrCreate(t.Context(), "", "shared", func() (session.Settings, error) { return session.Settings{Settings: chat.Settings{Model: "m"}}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestKilledWhileWriting(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(1, 2))
	confirmed := make(map[string]int)
	least := 20 * time.Millisecond // how long a child may work, until one comes as far as writing
	for round := range rounds {
		name := fmt.Sprint("child", round)
		cmd := command(t, dir, name, 1_000_000)
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(rnd.IntN(30_000))*time.Microsecond+least, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if _, killed := errors.AsType[*exec.ExitError](err); !killed {
			t.Fatalf("the child ended by itself: %v", err)
		}
		if confirmed[name] = strings.Count(out.String(), "\n"); confirmed[name] == 0 {
			least = min(2*least, 5*time.Second)
		}
		// At most the turn it was killed in is there without having been confirmed.
		got := appended(t, openShared(t, dir, func(_ context.Context, err error) { t.Log(err) }))
		for name, n := range confirmed {
			if got[name] < n || got[name] > n+1 {
				t.Fatalf("%s has confirmed %d turns, and %d are there", name, n, got[name])
			}
		}
	}
	total := 0
	for _, n := range confirmed {
		total += n
	}
	if total == 0 {
		t.Error("no child came as far as writing")
	}
	t.Logf("%d turns by %d processes that were killed", total, rounds)
}

// TestTornAtEveryByte cuts the last turn short at each of its bytes: it is gone as a
// whole, what was before it stays, and the next turn can be added.
func TestTornAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	s := openShared(t, dir, nil)
	ctx := t.Context()
	if err := s.Append(ctx, sessiontest.Turn(1)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "by-id", string(s.ID()), "messages.jsonl")
	before := read(t, file)
	if err := s.Append(ctx, namedTurn("ä\"", 2)); err != nil {
		t.Fatal(err)
	}
	whole := read(t, file)
	for size := len(before); size <= len(whole); size++ {
		write(t, file, whole[:size])
		var warnings []error
		s := openShared(t, dir, func(_ context.Context, err error) { warnings = append(warnings, err) })
		want := len(s.Messages())
		switch torn := size > len(before) && size < len(whole); {
		case size < len(whole) && want != 5:
			t.Fatalf("%d bytes of the turn: %d messages", size-len(before), want)
		case size == len(whole) && want != 7:
			t.Fatalf("the whole turn: %d messages", want)
		case torn && len(warnings) > 0:
			t.Fatalf("reading warns of what may be a turn that is being written: %v", warnings)
		default:
			if err := s.Append(ctx, sessiontest.Turn(3)); err != nil {
				t.Fatal(err)
			}
			if damage, ok := errors.AsType[*session.Damage](errors.Join(warnings...)); torn != (ok && damage.Cut && damage.Size == int64(size-len(before))) {
				t.Fatalf("%d bytes of the turn: warnings %v", size-len(before), warnings)
			}
		}
		again := openShared(t, dir, nil)
		if got := again.Messages(); len(got) != want+2 || got[want+1].Text() != "answer 3" {
			t.Fatalf("%d bytes of the turn, and then another: %d messages", size-len(before), len(got))
		}
	}
	if torn := read(t, filepath.Join(filepath.Dir(file), "messages.torn")); !bytes.Contains(torn, whole[len(before):len(whole)-2]) {
		t.Error("what was cut off is lost")
	}
}

func TestDamageInTheMiddle(t *testing.T) {
	dir := t.TempDir()
	s := openShared(t, dir, nil)
	for i := range 3 {
		if err := s.Append(t.Context(), namedTurn("a", i)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "by-id", string(s.ID()), "messages.jsonl")
	lines := bytes.SplitAfter(read(t, file), []byte("\n"))
	copy(lines[4], "\x00\x00\x00") // the user's message of the second turn
	write(t, file, bytes.Join(lines, nil))

	var warnings []error
	again := openShared(t, dir, func(_ context.Context, err error) { warnings = append(warnings, err) })
	if got := again.Messages(); len(got) != 6 {
		t.Errorf("%d of the 6 messages that can be read", len(got))
	}
	damage, ok := errors.AsType[*session.Damage](errors.Join(warnings...))
	if !ok || damage.Cut || damage.Offset != int64(len(bytes.Join(lines[:4], nil))) || damage.Size != int64(len(lines[4])) {
		t.Errorf("warnings %v", warnings)
	}
	if err := again.Append(t.Context(), namedTurn("b", 0)); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(read(t, file), bytes.Join(lines, nil)) {
		t.Error("appending has changed what was there")
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
