package bedrock

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/eventstream"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/wire"
)

// failure returns the error of a call or of its stream in the form that
// [provider.Chat] promises.
func failure(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return wire.Failure(ctx, doing, ctx.Err())
	}
	if e, ok := errors.AsType[*provider.Error](err); ok {
		if e.Status == http.StatusFailedDependency {
			// The model failed, not the request.
			e.Kind = provider.Transient
		}
		e.Rate = throttled(e)
		return e
	}
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return exception(e)
	}
	if notUnderstood(err) {
		return &provider.Error{Kind: provider.BadReply, Msg: doing + ": the reply cannot be understood", Err: cause(err)}
	}
	if neverSent(err) {
		return &provider.Error{Kind: provider.Invalid, Msg: doing + ": the request cannot be sent", Err: cause(err)}
	}
	return wire.Failure(ctx, doing, err)
}

// neverSent reports what the SDK itself refuses, such as a region of which no host
// name can be made, or a bearer token for a server without TLS.
func neverSent(err error) bool {
	_, operation := errors.AsType[*smithy.OperationError](err)
	_, sent := errors.AsType[*smithyhttp.RequestSendError](err)
	_, answered := errors.AsType[*smithyhttp.ResponseError](err)
	return operation && !sent && !answered
}

// notUnderstood reports failures to decode what has been received. The SDK has no
// type for most of them, but those of the connection have one.
func notUnderstood(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false
	}
	_, frame := errors.AsType[eventstream.ChecksumError](err)
	_, length := errors.AsType[eventstream.LengthError](err)
	_, kind := errors.AsType[*eventstream.UnknownMessageError](err)
	_, document := errors.AsType[*smithy.DeserializationError](err)
	return frame || length || kind || document || strings.HasPrefix(err.Error(), "missing :") || strings.HasPrefix(err.Error(), "deserialize ")
}

// cause returns what err is about without the operation and the service, which the
// message names already.
func cause(err error) error {
	if e, ok := errors.AsType[*smithy.OperationError](err); ok {
		return e.Err
	}
	return err
}

// exception returns the error for a failure that Bedrock reports. Its type says what
// kind it is, save for a conversation that is too long: of that only the wording of
// a validation exception shows that.
func exception(e smithy.APIError) error {
	err := wire.Complaint(e.ErrorMessage(), e.ErrorCode(), "")
	complaint, ok := errors.AsType[*provider.Error](err)
	if !ok {
		return err
	}
	if kind, ok := exceptionKind(e.ErrorCode()); ok && (kind != provider.Invalid || !specific(complaint.Kind)) {
		complaint.Kind = kind
	}
	complaint.Rate = throttled(complaint)
	return complaint
}

// throttled reports whether a limit of requests or tokens of a time is used up: what a ThrottlingException means, unless it is about
// calls at once.
func throttled(e *provider.Error) bool {
	return e.Kind == provider.RateLimited && !strings.Contains(strings.ToLower(e.Msg), "concurrent")
}

// specific reports whether a wording of kind says more than that the
// request is invalid.
func specific(kind provider.ErrorKind) bool {
	return kind == provider.ContextOverflow || kind == provider.Refused
}

// exceptionKind sorts an exception by its type, which is throttlingException in a
// stream and ThrottlingException elsewhere. What fails at the model or at the
// service may work the next time.
func exceptionKind(code string) (provider.ErrorKind, bool) {
	switch strings.TrimSuffix(strings.ToLower(code), "exception") {
	case "throttling":
		return provider.RateLimited, true
	case "modelerror", "modelstreamerror", "modeltimeout", "modelnotready", "internalserver", "serviceunavailable":
		return provider.Transient, true
	case "accessdenied", "unrecognizedclient", "expiredtoken", "invalidsignature", "incompletesignature", "missingauthenticationtoken":
		return provider.Authentication, true
	case "validation", "resourcenotfound", "servicequotaexceeded", "conflict":
		return provider.Invalid, true
	}
	return "", false
}
