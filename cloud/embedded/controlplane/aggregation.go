package controlplane

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
)

const apiServices = registry + "apiregistration.k8s.io/apiservices/"

// RestoreAggregation writes those objects of a state again that tell which APIs pods serve. The API
// server calls such pods, whether loops run or not, and notes since when they answer. During a
// restore they do not for a while, so this is the last thing to restore, once they do again. Even an
// object that is right is written: a call that failed before cannot be noted any more then, because
// the object has changed since.
func (p *Plane) RestoreAggregation(ctx context.Context, s State) error {
	for key, b := range s {
		if !strings.HasPrefix(key, apiServices) {
			continue
		}
		obj, _, err := aggregatorscheme.Codecs.UniversalDecoder(apiregistration.SchemeGroupVersion).Decode(b, nil, nil)
		if err != nil {
			return fmt.Errorf("restore %s: %w", key, err)
		}
		if a, ok := obj.(*apiregistration.APIService); ok && a.Spec.Service != nil {
			if _, err := p.store.Do(ctx, clientv3.OpPut(key, string(b))); err != nil {
				return fmt.Errorf("restore %s: %w", key, err)
			}
		}
	}
	return nil
}
