package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"loki/internal/frontend/api"
)

// SchedulePlan lists the schedules, and when they are due.
func (c *Client) SchedulePlan(ctx context.Context, from, until time.Time) (api.SchedulePlan, error) {
	return get[api.SchedulePlan](ctx, c, "/v1/schedule-plan", url.Values{"from": {from.UTC().Format(time.RFC3339)}, "to": {until.UTC().Format(time.RFC3339)}})
}

// AddSchedule makes a schedule.
func (c *Client) AddSchedule(ctx context.Context, r api.ScheduleRequest) (api.ScheduleDetail, error) {
	return post[api.ScheduleDetail](ctx, c, "/v1/schedules", r)
}

// PauseSchedule pauses a schedule, or ends that.
func (c *Client) PauseSchedule(ctx context.Context, name string, paused bool) error {
	verb := "continue"
	if paused {
		verb = "pause"
	}
	_, err := post[api.ScheduleDetail](ctx, c, pathOf("v1", "schedules", name, verb), nil)
	return err
}

// RunSchedule starts a run of a schedule.
func (c *Client) RunSchedule(ctx context.Context, name string) (api.ScheduleTime, error) {
	return post[api.ScheduleTime](ctx, c, pathOf("v1", "schedules", name, "run"), nil)
}

// ScheduleTimes returns what the times of a schedule led to, newest first.
func (c *Client) ScheduleTimes(ctx context.Context, name string) ([]api.ScheduleTime, error) {
	list, err := get[api.List[api.ScheduleTime]](ctx, c, pathOf("v1", "schedules", name, "firings"), url.Values{"limit": {"1000"}})
	return list.Data, err
}

// DeleteSchedule deletes a schedule.
func (c *Client) DeleteSchedule(ctx context.Context, name string) error {
	return c.do(ctx, request{method: http.MethodDelete, path: pathOf("v1", "schedules", name)}, nil)
}
