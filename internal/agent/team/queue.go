package team

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// taskStatus is what a task is doing.
type taskStatus string

// The statuses of tasks.
const (
	pending    taskStatus = "pending" // nothing is in its way
	blocked    taskStatus = "blocked" // by tasks that are not completed
	inProgress taskStatus = "in_progress"
	completed  taskStatus = "completed"
	failed     taskStatus = "failed"
)

// task is something to do, which may have to wait for other tasks.
type task struct {
	ID          int        `json:"id"` // from 1
	Subject     string     `json:"subject"`
	Description string     `json:"description,omitempty"`
	Status      taskStatus `json:"status"`
	Owner       string     `json:"owner,omitempty"`
	BlockedBy   []int      `json:"blocked_by,omitempty"` // tasks that are not completed, ascending
	Blocks      []int      `json:"blocks,omitempty"`     // tasks that wait, or waited, for it, ascending
	Agent       string     `json:"agent,omitempty"`
	Prompt      string     `json:"prompt,omitempty"`
}

// clone returns a copy that shares nothing with t.
func (t task) clone() task {
	t.BlockedBy, t.Blocks = slices.Clone(t.BlockedBy), slices.Clone(t.Blocks)
	return t
}

// queue is the tasks of a member: the one with id n is queue[n-1]. Its methods do not change it;
// they return the tasks that a change makes or alters, to be put.
type queue []task

// put takes over a task that is new or has changed.
func (q *queue) put(t task) {
	if t.ID > len(*q) {
		*q = append(*q, t)
		return
	}
	(*q)[t.ID-1] = t
}

// find returns the task that a model means: "3", and also "task_3" or "#3".
func (q queue) find(id string) (task, bool) {
	n, err := strconv.Atoi(strings.TrimLeft(id, "task_# "))
	if err != nil || n < 1 || n > len(q) {
		return task{}, false
	}
	return q[n-1].clone(), true
}

// create returns a new task that waits for those with the ids blockedBy, and the tasks that it
// changes. The warnings are about ids that are no help. A new task cannot be in a cycle unless it
// waits for itself: no task waits for one that is not there yet.
func (q queue) create(t task, blockedBy []string) (changed []task, warnings []string) {
	t.ID, t.Status = len(q)+1, pending
	for _, id := range blockedBy {
		b, ok := q.find(id)
		switch {
		case !ok && strings.TrimLeft(id, "task_# ") == strconv.Itoa(t.ID):
			warnings = append(warnings, fmt.Sprintf("task %d cannot wait for itself", t.ID))
			continue
		case !ok:
			warnings = append(warnings, fmt.Sprintf("there is no task %q, so task %d does not wait for it", id, t.ID))
			continue
		case b.Status == completed || slices.Contains(t.BlockedBy, b.ID):
			continue
		case b.Status == failed:
			warnings = append(warnings, fmt.Sprintf("task %d has failed, so task %d stays blocked until it is completed after all", b.ID, t.ID))
		}
		b.Blocks = append(b.Blocks, t.ID)
		changed = append(changed, b)
		t.BlockedBy, t.Status = append(t.BlockedBy, b.ID), blocked
	}
	slices.Sort(t.BlockedBy)
	return append([]task{t}, changed...), warnings
}

// complete returns what changes when t is completed: t itself, the tasks that waited for it, and
// whichever of these nothing else blocks.
func (q queue) complete(t task) (changed, runnable []task) {
	t.Status = completed
	changed = []task{t}
	for _, id := range t.Blocks {
		d := q[id-1].clone()
		i, found := slices.BinarySearch(d.BlockedBy, t.ID)
		if !found {
			continue
		}
		d.BlockedBy = slices.Delete(d.BlockedBy, i, i+1)
		if len(d.BlockedBy) == 0 && d.Status == blocked {
			d.Status = pending
			runnable = append(runnable, d)
		}
		changed = append(changed, d)
	}
	return changed, runnable
}

// dependents returns the ids of the tasks that t keeps blocked.
func (q queue) dependents(t task) []int {
	return slices.DeleteFunc(slices.Clone(t.Blocks), func(id int) bool {
		_, found := slices.BinarySearch(q[id-1].BlockedBy, t.ID)
		return !found
	})
}
