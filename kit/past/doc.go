// Package past continues what programs tell of themselves into the time before they were started.
//
// A container that is restored from a rewritten snapshot says that it was started weeks ago, but its program
// has run for seconds. Once it has had its usual load for a moment, it is told its past ([Past]): what it has
// counted since then is what it would have counted all the time, in a daily curve with noise and a few
// excursions. Who counts multiplies ([Gatherer]); who collects, as Prometheus does, continues backwards. Both use
// the same curve, so that counters go on and rates are right where the past meets the present.
//
//	env.Recall(kit.Source, func(_ context.Context, p *past.Past) error {
//		metrics.Age(p, env.Started)
//		return nil
//	})
//
// Everything is drawn from the seed and depends on how long ago something was, so that one seed has one past.
package past
