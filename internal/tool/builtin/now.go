package builtin

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"loki/internal/tool"
)

func (b *base) currentTime() tool.Tool {
	return &native{
		name:        "get_current_time",
		description: "Get the current date and time of the user, with the time zone.",
		hints:       tool.Hints{ReadOnly: true},
		run: func(context.Context, tool.Call) (tool.Result, error) {
			now := b.Now()
			return tool.Result{Output: now.Format("Mon Jan _2 15:04:05 MST 2006") + " (" + now.Format(time.RFC3339) + ")"}, nil
		},
	}
}

func (b *base) currentWeather() tool.Tool {
	params := []param{{name: "location", kind: "string", description: "The city or place, such as London."}}
	type weatherArgs struct {
		Location string `json:"location"`
	}
	return &native{
		name:        "get_current_weather",
		description: "Get the current weather in a given location.",
		params:      params,
		hints:       tool.Hints{ReadOnly: true, Timeout: serviceTimeout},
		run: function(params, func(ctx context.Context, args weatherArgs, _ tool.Call) (string, error) {
			data, err := b.do(ctx, request{
				service: "wttr.in",
				url:     cmp.Or(b.Services.Weather, "https://wttr.in") + "/" + url.PathEscape(strings.TrimSpace(args.Location)) + "?format=4&M",
			})
			if err == nil && len(strings.TrimSpace(string(data))) == 0 {
				err = errors.New("wttr.in does not know this place")
			}
			return string(data), err
		}),
	}
}
