package controlplane

import (
	"context"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// startScheduler runs the default scheduler until ctx ends. It returns once its caches are filled;
// done is closed when it has stopped.
func startScheduler(ctx context.Context, config *rest.Config) (done <-chan struct{}, err error) {
	fail := func(err error) (<-chan struct{}, error) { return nil, fmt.Errorf("start scheduler: %w", err) }
	c, err := clientset.NewForConfig(config)
	if err != nil {
		return fail(err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return fail(err)
	}
	defaults, err := latest.Default()
	if err != nil {
		return fail(err)
	}
	informers := scheduler.NewInformerFactory(c, 0, nil)
	dynInformers := dynamicinformer.NewDynamicSharedInformerFactory(dyn, 0)
	broadcaster := events.NewEventBroadcasterAdapterWithContext(ctx, c)
	broadcaster.StartRecordingToSink(ctx.Done())
	recorders := profile.RecorderFactory(func(name string) events.EventRecorderLogger {
		return broadcaster.NewRecorder(name)
	})
	s, err := scheduler.New(ctx, c, informers, dynInformers, recorders,
		scheduler.WithKubeConfig(config), scheduler.WithProfiles(defaults.Profiles...), scheduler.WithParallelism(2))
	if err != nil {
		return fail(err)
	}
	informers.Start(ctx.Done())
	dynInformers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	dynInformers.WaitForCacheSync(ctx.Done())
	if err := s.WaitForHandlersSync(ctx); err != nil {
		return fail(err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.Run(ctx)
		informers.Shutdown()
		dynInformers.Shutdown()
		broadcaster.Shutdown()
	}()
	return stopped, nil
}
