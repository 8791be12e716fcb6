package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/text"
	"loki/internal/conversation/launch/background"
	"loki/internal/frontend/api"
	"loki/internal/frontend/api/summary"
	"loki/internal/frontend/command/display"
	"loki/internal/workflow/graph/gate"
	"loki/internal/workflow/run"
	"loki/internal/workflow/schedule"
)

// scheduling is what happens with schedules.
type scheduling struct {
	doc      schedule.Doc
	parked   int
	blackout []string
	month    string // an amount

	from, until string // of --schedules
}

// defaultDueJobs is how many runs --run-due has at work at the same time.
const defaultDueJobs = 4

// timers are the kinds of units that --print-timer prints.
var timers = []string{"systemd", "launchd", "cron", "windows"}

// scheduleSection returns the flags about schedules.
func (o *options) scheduleSection() section {
	s := &o.scheduling
	with, starts := []string{"schedule"}, []string{"schedule", "agent"}
	return section{
		name: "schedules", title: "Start runs automatically",
		common: []flagSpec{
			{name: "schedule", sets: actionValue("NAME"), usage: "run an agent at set times: with -a, and --cron, --every or --at; the text is the prompt"},
			{name: "schedules", sets: on(new(bool)), usage: "list the schedules, and with --from or --until their due times"},
			{name: "run-due", sets: on(new(bool)), usage: "start the runs that are due, resume others, and exit when all have ended or wait; --serve does it continuously"},
		},
		more: []flagSpec{
			{name: "cron", sets: word(&s.doc.Cron, "FIELDS"), usage: "with --schedule: minute, hour, day of month, month, day of week; or @hourly, @daily, @weekly, @monthly, @yearly", with: with},
			{name: "every", sets: word(&s.doc.Every, "SPAN"), usage: "with --schedule: an interval such as 90m or 7d", with: with},
			{name: "at", sets: word(&s.doc.At, "TIME"), usage: "with --schedule: one time, such as 2026-12-24T07:00", with: with},
			{name: "timezone", sets: word(&s.doc.Timezone, "ZONE"), usage: "with --schedule: time zone, such as Europe/Berlin; by default that of the system", with: with},
			{name: "start", sets: word(&s.doc.Start, "TIME"), usage: "with --schedule: not before this time", with: with},
			{name: "end", sets: word(&s.doc.End, "TIME"), usage: "with --schedule: not at or after this time", with: with},
			{name: "jitter", sets: word(&s.doc.Jitter, "SPAN"), usage: "with --schedule: delay each run by up to this span", with: with},
			{name: "grace", sets: word(&s.doc.Grace, "SPAN"), usage: "with --schedule: how late a run may start before its time counts as missed, by default 10m", with: with},
			{name: "blackout", sets: list(&s.blackout), usage: "with --schedule: start nothing at `TIMES` such as 'SAT,SUN', '22:00-06:00', 'SAT 22:00-06:00' or 2026-12-24; may be repeated", with: with},
			{name: "missed", sets: choice(&s.doc.Missed, "RULE", []string{schedule.MissedOnce, schedule.MissedSkip, schedule.MissedAll}), usage: "with --schedule: what to do about missed times: once (one run for the newest; the default), skip or all", with: with},
			{name: "overlap", sets: choice(&s.doc.Overlap, "RULE", []string{schedule.OverlapSkip, schedule.OverlapQueue, schedule.OverlapCancel, schedule.OverlapAllow}), usage: "with --schedule: what to do if the last run has not ended; with --concurrency-key: if the limit is reached: skip (the default of a schedule), queue, cancel or allow", with: starts},
			{name: "priority", sets: choice(&s.doc.Priority, "PRIORITY", []string{gate.High, gate.Normal, gate.Low}), usage: "priority of the run and its model calls: high, normal or low"},
			{name: "concurrency-key", sets: word(&s.doc.Key, "KEY"), usage: "with --agent or --schedule: runs with this key work one after another, or as --concurrency-limit says; may have {{variables.NAME}}", with: starts},
			{name: "concurrency-limit", sets: countTo(&s.doc.Limit, gate.MaxLimit), usage: "with --concurrency-key: `N` runs with the key may work at the same time", with: []string{"concurrency-key", "schedule"}},
			{name: "throttle", sets: word(&s.doc.Throttle, "RATE"), usage: "with --concurrency-key or --schedule: start at most this many runs in an interval, such as 10/1m; others wait", with: []string{"concurrency-key", "schedule"}},
			{name: "debounce", sets: word(&s.doc.Debounce, "SPAN"), usage: "with --concurrency-key or --schedule: wait for this span, such as 30s; a newer run replaces one that waits", with: []string{"concurrency-key", "schedule"}},
			{name: "max-parked", sets: number(&s.parked, 1), usage: "with --schedule: start nothing while `N` runs wait for answers; 0 for no limit", with: with},
			{name: "budget-month", sets: word(&s.month, "AMOUNT"), usage: "with --schedule: budget of all runs of a month, in the form of --budget", with: with},
			{name: "paused", sets: on(&s.doc.Paused), usage: "with --schedule: begin paused", with: with},
			{name: "from", sets: word(&s.from, "TIME"), usage: "with --schedules: show due times from this time on", with: []string{"schedules"}},
			{name: "until", sets: word(&s.until, "TIME"), usage: "with --schedules: show due times until this time, or for a span such as 7d", with: []string{"schedules"}},
			{name: "schedule-history", sets: actionValue("NAME"), usage: "show the outcome of each due time of a schedule"},
			{name: "schedule-pause", sets: actionValue("NAME"), usage: "pause a schedule: it skips its times"},
			{name: "schedule-continue", sets: actionValue("NAME"), usage: "end the pause of a schedule"},
			{name: "schedule-delete", sets: actionValue("NAME"), usage: "delete a schedule that --schedule or the server made"},
			{name: "schedule-now", sets: actionValue("NAME"), usage: "start a run of a schedule now, and wait for it"},
			{name: "schedule-on", sets: actionValue("NAME"), usage: "turn on a schedule of an agent's file, as the agent is now"},
			{name: "print-timer", sets: choice(new(string), "SYSTEM", timers), usage: "print a timer with which the system starts --run-due every minute: " + strings.Join(timers, ", ")},
		},
	}
}

// scheduleActions returns what the flags about schedules do.
func scheduleActions() []action {
	keys := []string{
		"agent", "agent-variable", "model", "budget", "yes", "cron", "every", "at", "timezone", "start", "end", "jitter", "grace", "blackout", "missed", "overlap", "max-parked",
		"budget-month", "paused", "priority", "concurrency-key", "concurrency-limit", "throttle", "debounce", "server",
	}
	server := []string{"server"}
	return []action{
		{flag: "schedule", needs: needConfig, do: (*command).addSchedule, remote: (*command).addScheduleAt, alone: true, words: true, beside: keys},
		{flag: "schedules", needs: needConfig, looks: true, do: (*command).listSchedules, remote: (*command).listSchedulesAt, alone: true, beside: []string{"server", "from", "until"}},
		{flag: "run-due", needs: needConfig, do: (*command).runDue, alone: true, beside: []string{"jobs", "quiet"}, noServer: true},
		{flag: "schedule-history", needs: needConfig, looks: true, do: (*command).showOutcomes, remote: (*command).showOutcomesAt, alone: true, beside: server},
		{flag: "schedule-pause", needs: needConfig, do: pauseSchedule(true), remote: pauseScheduleAt(true), alone: true, beside: server},
		{flag: "schedule-continue", needs: needConfig, do: pauseSchedule(false), remote: pauseScheduleAt(false), alone: true, beside: server},
		{flag: "schedule-delete", needs: needConfig, do: (*command).deleteSchedule, remote: (*command).deleteScheduleAt, alone: true, beside: server},
		{flag: "schedule-now", needs: needConfig, do: (*command).startScheduled, remote: (*command).startScheduledAt, alone: true, beside: []string{"server", "quiet"}},
		{flag: "schedule-on", needs: needConfig, do: (*command).enableSchedule, alone: true, noServer: true},
		{flag: "print-timer", needs: needConfig, looks: true, do: (*command).printTimer, alone: true, local: true},
	}
}

// withSchedules opens the schedules for work.
func (c *command) withSchedules(work func(*schedule.Service) error) error {
	return c.withRuns(func(store run.Store) error { return work(c.app.Background.Schedules(store, nil)) })
}

// scheduleDoc returns the schedule that the flags describe.
func (c *command) scheduleDoc() (schedule.Doc, error) {
	d := c.opts.scheduling.doc
	d.Agent, d.Prompt, d.Model, d.Yes = c.opts.agent, strings.Join(c.opts.text, " "), c.opts.model, c.opts.yes
	if d.Agent == "" {
		return d, fault.New(fault.Usage, "--schedule needs the agent that runs: -a AGENT")
	}
	if c.opts.flags.Changed("max-parked") {
		d.MaxParked = &c.opts.parked
	}
	for _, v := range c.opts.variables {
		if d.Variables == nil {
			d.Variables = make(map[string]string)
		}
		d.Variables[v[0]] = v[1]
	}
	if limit, _ := c.opts.limit(); c.opts.budget != "" { // it was checked
		d.Budget = &schedule.Amount{USD: limit.USD, Tokens: limit.Tokens}
	}
	if c.opts.month != "" {
		limit, err := parseAmount("budget-month", c.opts.month)
		if err != nil {
			return d, err
		}
		d.BudgetMonth = &schedule.Amount{USD: limit.USD, Tokens: limit.Tokens}
	}
	for _, times := range c.opts.blackout {
		d.Blackout = append(d.Blackout, parseBlackout(times))
	}
	return d, nil
}

// addSchedule makes a schedule.
func (c *command) addSchedule(ctx context.Context) error {
	d, err := c.scheduleDoc()
	if err != nil {
		return err
	}
	s, err := c.app.Background.CheckSchedule(c.opts.value, d)
	if err != nil {
		return err
	}
	return c.withSchedules(func(all *schedule.Service) error {
		err := all.Add(ctx, s, nil)
		if taken, ok := errors.AsType[*schedule.TakenError](err); ok {
			return fault.Wrap(fault.Config, taken, "").WithHint("choose another name, or delete it first: loki --schedule-delete %s", taken.Name)
		}
		if err != nil {
			return err
		}
		k, err := all.Find(ctx, s.Name)
		if err != nil {
			return err
		}
		next := k.Next(time.Now())
		c.reportSchedule(s.Name, &next, "runs start while loki --serve works, or by loki --run-due (see loki --print-timer)")
		return nil
	})
}

// reportSchedule reports that a schedule was made, and what starts its runs. A next time that is nil or zero is none.
func (c *command) reportSchedule(name string, next *time.Time, starts string) {
	when := "it is paused"
	if next != nil && !next.IsZero() {
		when = "next at " + next.Format("Mon 2006-01-02 15:04:05 MST")
	}
	fmt.Fprintf(c.Err, "schedule %s: %s; %s\n", name, when, starts)
}

// parseBlackout returns the blackout that words mean: days, dates, and from when to when. [schedule.Check] finds what is wrong.
func parseBlackout(times string) (b schedule.Blackout) {
	for word := range strings.FieldsFuncSeq(times, func(r rune) bool { return r == ' ' || r == ',' }) {
		from, to, isRange := strings.Cut(word, "-")
		switch {
		case strings.Contains(word, ":") && isRange:
			b.From, b.To = from, to
		case isRange:
			b.Dates = append(b.Dates, word)
		default:
			b.Days = append(b.Days, word)
		}
	}
	return b
}

// listSchedules lists the schedules, and when they are due.
func (c *command) listSchedules(ctx context.Context) error {
	return c.withSchedules(func(all *schedule.Service) error {
		from, until, err := c.planTimes()
		if err != nil {
			return err
		}
		plan, err := summary.SchedulePlan(ctx, all, from, until, func(*schedule.Kept) bool { return true })
		if err != nil {
			return err
		}
		return c.printPlan(*plan)
	})
}

// planTimes returns from when to when due times are listed.
func (c *command) planTimes() (from, until time.Time, err error) {
	if from, err = timeFlag("from", c.opts.from, time.Now(), time.Now()); err == nil {
		until, err = timeFlag("until", c.opts.until, from.Add(7*24*time.Hour), from)
	}
	return from, until, err
}

// printPlan prints schedules, and when they are due.
func (c *command) printPlan(plan api.SchedulePlan) error {
	if len(plan.Schedules) == 0 && c.opts.output == outputText {
		fmt.Fprintln(c.Err, "there are no schedules; loki --schedule NAME -a AGENT --cron '0 7 * * MON-FRI' makes one")
		return nil
	}
	table := display.List([]string{"NAME", "AGENT", "WHEN", "STATE", "NEXT", "LAST"}, plan.Schedules, func(s api.Schedule) []string {
		return []string{s.Name, s.Agent, s.When, s.State, localTime(s.Next), lastOf(s)}
	})
	if c.opts.from != "" || c.opts.until != "" {
		rows := [][]string{{"DUE", "NAME", "ZONE'S TIME", "SKIPPED"}}
		for _, t := range plan.Plan {
			rows = append(rows, []string{localTime(&t.Due), t.Name, t.Local, t.Skipped})
		}
		table += "\n" + display.Table(rows)
	}
	return c.print(plan, table)
}

// lastOf returns what the last time of a schedule led to.
func lastOf(s api.Schedule) string {
	switch {
	case s.Error != "":
		return s.Error
	case s.Last == nil:
		return "-"
	case s.Last.RunID != "":
		return "run " + s.Last.RunID
	}
	return s.Last.Reason
}

// localTime returns a time for people, "-" for none.
func localTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Local().Format("Mon 2006-01-02 15:04:05")
}

// timeFlag returns the time that a flag means: a time, or a span after another time. An empty one means otherwise.
func timeFlag(flag, value string, otherwise, after time.Time) (time.Time, error) {
	if value == "" {
		return otherwise, nil
	}
	if span, err := parseAge(value); err == nil {
		return after.Add(span), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, value, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fault.New(fault.Usage, "flag --%s: %q is not a time", flag, value).WithHint("write a time such as 2026-12-24 or 2026-12-24T07:00, or a span such as 7d")
}

// showOutcomes shows what the times of a schedule led to.
func (c *command) showOutcomes(ctx context.Context) error {
	return c.withSchedules(func(all *schedule.Service) error {
		outcomes, err := all.History(ctx, c.opts.value, 0)
		if err == nil && len(outcomes) == 0 {
			_, err = all.Find(ctx, c.opts.value)
		}
		if err != nil {
			return err
		}
		return c.printOutcomes(summary.ScheduleTimes(outcomes))
	})
}

// printOutcomes prints what the times of a schedule led to.
func (c *command) printOutcomes(list []api.ScheduleTime) error {
	rows := [][]string{{"DUE", "OUTCOME", "LATE", "RUN"}}
	for _, o := range list {
		what, late := cmp.Or(o.Reason, o.Outcome), "-"
		if o.Count > 1 {
			what += ", " + text.Count(o.Count, "time")
		}
		if o.Error != "" {
			what += ": " + o.Error
		}
		if o.RunID != "" {
			late = time.Duration(o.LateSeconds * float64(time.Second)).Round(time.Millisecond).String()
		}
		rows = append(rows, []string{localTime(&o.Due), what, late, o.RunID})
	}
	return c.print(list, display.Table(rows, 2))
}

// pauseSchedule returns what pauses a schedule, or ends that.
func pauseSchedule(paused bool) func(*command, context.Context) error {
	return func(c *command, ctx context.Context) error {
		return c.withSchedules(func(all *schedule.Service) error { return all.Pause(ctx, c.opts.value, paused) })
	}
}

func (c *command) deleteSchedule(ctx context.Context) error {
	return c.withSchedules(func(all *schedule.Service) error { return all.Delete(ctx, c.opts.value) })
}

// enableSchedule switches on a schedule of an agent's file.
func (c *command) enableSchedule(ctx context.Context) error {
	return c.withSchedules(func(all *schedule.Service) error {
		if err := all.SwitchOn(ctx, c.opts.value); err != nil {
			return err
		}
		k, err := all.Find(ctx, c.opts.value)
		if err == nil {
			next := k.Next(time.Now())
			fmt.Fprintf(c.Err, "schedule %s is on: agent %s, next at %s; a change of the agent switches it off\n", k.Name, display.Line(k.Agent), localTime(&next))
		}
		return err
	})
}

// runDue does what is due.
func (c *command) runDue(ctx context.Context) error {
	jobs := defaultDueJobs
	if c.opts.flags.Changed("jobs") {
		jobs = c.opts.jobs
	}
	return c.runObserved(ctx, jobs, "")
}

// startScheduled starts a run of a schedule now.
func (c *command) startScheduled(ctx context.Context) error {
	return c.runObserved(ctx, 1, c.opts.value)
}

// runObserved does what is due, or starts a run of the schedule that only names.
func (c *command) runObserved(ctx context.Context, jobs int, only string) error {
	observer, observed := c.app.Observe(ctx)
	did, err := c.app.RunDue(ctx, jobs, only, observer)
	for _, w := range observed(context.WithoutCancel(ctx)) {
		c.warn(w)
	}
	if err != nil {
		return err
	}
	return c.reportDue(did)
}

// reportDue prints what was done. The error says that a run has failed, or waits for an answer.
func (c *command) reportDue(did background.Due) error {
	work := api.DueWork{Fired: []api.FiredRun{}, Skipped: []api.SkippedTime{}, Resumed: []api.ResumedRun{}}
	var failed, parked, waits []string
	status := func(id string) string {
		info := did.Runs[id]
		switch info.Status {
		case run.Failed:
			failed = append(failed, id)
		case run.Suspended:
			parked = append(parked, id)
		}
		return summary.Status(info)
	}
	for _, o := range did.Outcomes {
		if o.Run != "" {
			work.Fired = append(work.Fired, api.FiredRun{Name: o.Name, Due: o.Due.UTC(), RunID: o.Run, Status: status(o.Run)})
		} else {
			if o.Reason == schedule.ForParked {
				waits = append(waits, o.Name)
			}
			work.Skipped = append(work.Skipped, api.SkippedTime{Name: o.Name, Due: o.Due.UTC(), Reason: o.Reason})
		}
	}
	for _, id := range did.Resumed {
		work.Resumed = append(work.Resumed, api.ResumedRun{RunID: id, Status: status(id)})
	}
	if c.opts.output != outputText {
		if err := printJSON(c.Out, work); err != nil {
			return err
		}
	} else if !c.opts.quiet {
		for _, r := range work.Fired {
			fmt.Fprintf(c.Out, "%s: run %s, %s\n", r.Name, r.RunID, r.Status)
		}
		for _, s := range work.Skipped {
			fmt.Fprintf(c.Out, "%s: skipped %s, %s\n", s.Name, localTime(&s.Due), s.Reason)
		}
		for _, r := range work.Resumed {
			fmt.Fprintf(c.Out, "resumed run %s, %s\n", r.RunID, r.Status)
		}
	}
	switch {
	case len(failed) > 0:
		return fault.New(fault.Failure, "%s failed", text.Count(len(failed), "run")).WithHint("loki --run %s", failed[0])
	case len(parked) > 0:
		return fault.New(fault.Suspended, "%s: suspended", text.Count(len(parked), "run")).WithHint("loki --run %s shows what it waits for", parked[0])
	case len(waits) > 0:
		return fault.New(fault.Suspended, "%s: a run waits for an answer", waits[0]).WithHint("loki --schedule-history %s names it", waits[0])
	}
	return nil
}

// printTimer prints what has a system start --run-due every minute, with this program, directory and configuration.
func (c *command) printTimer(context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	setting := c.app.Env.Get("LOKI_CONFIG_DIR")
	switch c.opts.value {
	case "systemd":
		environment := ""
		if setting != "" {
			environment = fmt.Sprintf("Environment=%q\n", "LOKI_CONFIG_DIR="+setting)
		}
		fmt.Fprintf(c.Out, `# ~/.config/systemd/user/loki-due.service
[Unit]
Description=Loki: runs that are due

[Service]
Type=oneshot
WorkingDirectory=%s
%sExecStart=%q --run-due --quiet
SuccessExitStatus=8

# ~/.config/systemd/user/loki-due.timer; start it with: systemctl --user enable --now loki-due.timer
[Unit]
Description=Loki: every minute

[Timer]
OnCalendar=*:*:00
AccuracySec=1s
Persistent=true

[Install]
WantedBy=timers.target
`, dir, environment, program)
	case "launchd":
		environment := ""
		if setting != "" {
			environment = fmt.Sprintf("\t<key>EnvironmentVariables</key><dict><key>LOKI_CONFIG_DIR</key><string>%s</string></dict>\n", escapeXML(setting))
		}
		fmt.Fprintf(c.Out, `<?xml version="1.0" encoding="UTF-8"?>
<!-- ~/Library/LaunchAgents/loki.due.plist; start it with: launchctl load ~/Library/LaunchAgents/loki.due.plist -->
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
	<key>Label</key><string>loki.due</string>
	<key>ProgramArguments</key><array><string>%s</string><string>--run-due</string><string>--quiet</string></array>
	<key>WorkingDirectory</key><string>%s</string>
%s	<key>StartInterval</key><integer>60</integer>
</dict></plist>
`, escapeXML(program), escapeXML(dir), environment)
	case "cron":
		environment := ""
		if setting != "" {
			environment = "LOKI_CONFIG_DIR=" + text.Word(setting) + " "
		}
		command := fmt.Sprintf("cd %s && %s%s --run-due --quiet", text.Word(dir), environment, text.Word(program))
		fmt.Fprintf(c.Out, "# a line for crontab -e\n* * * * * %s\n", strings.ReplaceAll(command, "%", `\%`))
	case "windows":
		set := ""
		if setting != "" {
			set = fmt.Sprintf(`set "LOKI_CONFIG_DIR=%s" && `, setting)
		}
		fmt.Fprintf(c.Out, "schtasks /Create /TN loki-due /SC MINUTE /MO 1 /TR \"cmd /c cd /d \\\"%s\\\" && %s\\\"%s\\\" --run-due --quiet\"\n", dir, strings.ReplaceAll(set, `"`, `\"`), program)
	}
	if c.opts.value == "windows" != (runtime.GOOS == "windows") {
		fmt.Fprintln(c.Err, "paths are those of this system")
	}
	return nil
}

// escapeXML returns a text as XML has it.
func escapeXML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
