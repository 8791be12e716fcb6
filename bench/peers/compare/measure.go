package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// engine is a side as the comparison sees it.
type engine interface {
	about() about
	// ask makes the runs one after the other and returns how long they took. If the
	// side has no such case, ok is false.
	ask(name string, runs int) (took time.Duration, ok bool, err error)
}

// about is what a side says of itself.
type about struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Runtime string `json:"runtime"`
	Durable string `json:"durable"` // what its durable cases store checkpoints with
	Without string `json:"without"` // why it has none
}

// side is the program of an engine.
type side struct {
	self about
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
}

func start(cmd *exec.Cmd) (*side, error) {
	s := &side{cmd: cmd}
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewScanner(out)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := s.line()
	if err == nil {
		err = json.Unmarshal([]byte(line), &s.self)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// stop ends the program by ending its input, and waits for it.
func (s *side) stop() {
	s.in.Close()
	s.cmd.Wait() // how it ends does not matter any more
}

func (s *side) line() (string, error) {
	if s.out.Scan() {
		return s.out.Text(), nil
	}
	return "", errors.Join(errors.New("the program ended"), s.out.Err())
}

func (s *side) about() about { return s.self }

func (s *side) ask(name string, runs int) (time.Duration, bool, error) {
	if _, err := fmt.Fprintln(s.in, name, runs); err != nil {
		return 0, false, err
	}
	line, err := s.line()
	if err != nil || line == "-" {
		return 0, false, err
	}
	ns, err := strconv.ParseInt(line, 10, 64)
	return time.Duration(ns), true, err
}

// result is what came of a case at one side.
type result struct {
	has     bool          // the side has the case
	median  time.Duration // of one run
	samples int           // requests that it is the median of
	spread  float64       // half the distance of the quartiles, as a part of the median
}

const (
	warmUp      = time.Second            // at least, and at least one run
	sampleTime  = 100 * time.Millisecond // of one request, unless a run takes longer
	samples     = 7
	slow        = time.Second // a run that takes longer is sampled slowSamples times
	slowSamples = 5
	tooSlow     = 10 * time.Second // a run that takes longer is made once, cold
)

// measure asks all sides for a case, in turns, after each has warmed up.
func measure(sides []engine, name string) ([]result, error) {
	results := make([]result, len(sides))
	taken := make([][]time.Duration, len(sides)) // per run
	runs := make([]int, len(sides))
	for i, s := range sides {
		var first time.Duration
		var err error
		if first, results[i].has, err = s.ask(name, 1); err != nil {
			return nil, fmt.Errorf("%s: %w", s.about().Name, err)
		}
		if !results[i].has {
			continue
		}
		if first > tooSlow {
			taken[i], results[i].samples = []time.Duration{first}, 1
			continue
		}
		runs[i] = 1
		each := first
		for spent := first; spent < warmUp; {
			runs[i] = max(1, int(sampleTime/max(each, 1)))
			took, _, err := s.ask(name, runs[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.about().Name, err)
			}
			each = took / time.Duration(runs[i])
			spent += took
		}
		results[i].samples = samples
		if each > slow {
			results[i].samples = slowSamples
		}
	}
	for round := range samples {
		for i, s := range sides {
			if len(taken[i]) > round || len(taken[i]) == results[i].samples {
				continue
			}
			took, _, err := s.ask(name, runs[i])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.about().Name, err)
			}
			taken[i] = append(taken[i], took/time.Duration(runs[i]))
		}
	}
	for i := range results {
		if results[i].has {
			slices.Sort(taken[i])
			n := len(taken[i])
			results[i].median = taken[i][n/2]
			results[i].spread = float64(taken[i][3*n/4]-taken[i][n/4]) / 2 / float64(max(1, results[i].median))
		}
	}
	return results, nil
}
