"""Models of images in timm, as its users make them."""
import sizes


def make(model, classes):
    """A timm model by its name, or a VisionTransformer of these sizes."""
    import timm
    if isinstance(model, str):
        return timm.create_model(model, num_classes=classes)
    return timm.models.VisionTransformer(**model, num_classes=classes)


def of_case(case):
    """The model of a case that classifies, its images of a batch and their edge."""
    model, batch, edge, classes = sizes.CLASSIFY[case]
    return make(model, classes).eval(), batch, edge
