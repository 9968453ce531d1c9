/*
 * What is kept as documents and asked from any thread: images, priority classes, services. They are there before the loop
 * begins and go after it.
 */
#include "control/services.h"
#include "control/state.h"

void st_catalogues_new(st_control *ctl)
{
    ctl->images = st_images_new(ctl->dir);
    ctl->volumes = st_volumes_new(ctl->dir);
    ctl->classes = st_classes_new(ctl->dir);
    ctl->services = st_services_new();
}

int st_catalogues_load(st_control *ctl, st_err *err)
{
    int r = st_images_load(ctl->images, ctl->store, err);

    if (r == 0)
        r = st_volumes_load(ctl->volumes, ctl->store, err);
    if (r == 0)
        r = st_classes_load(ctl->classes, ctl->store, err);
    return r < 0 ? r : st_services_load(ctl->services, ctl->store, err);
}

void st_catalogues_free(st_control *ctl)
{
    st_images_free(ctl->images);
    st_volumes_free(ctl->volumes);
    st_classes_free(ctl->classes);
    st_services_free(ctl->services);
}
