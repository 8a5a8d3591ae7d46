"""Names at top level whose modules are imported when they are first asked for."""

from __future__ import annotations

TRANSFORMS = {
    "checking": "check_grads",
    "control": "cond fori_loop scan switch while_loop",
    "checkpointing": "checkpoint",
    "custom": "custom_jvp custom_vjp stop_gradient",
    "forward": "jvp linearize",
    "jacobians": "hessian jacfwd jacobian jacrev",
    "mapping": "vmap",
    "hessian_products": "hvp vhp",
    "pytree": "ravel_pytree register_pytree_node tree_flatten tree_leaves tree_map tree_reduce "
    "tree_unflatten",
    "reverse": "grad value_and_grad vjp",
}
# Those of `nn.functional` that PyTorch has at top level, too, and those that differ there.
NETWORKS = (
    "adaptive_avg_pool1d avg_pool1d bilinear celu celu_ channel_shuffle conv1d conv2d conv3d "
    "conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity group_norm layer_norm "
    "max_pool1d max_pool2d max_pool3d pairwise_distance pixel_shuffle pixel_unshuffle rms_norm "
    "rrelu rrelu_ selu selu_"
)
OTHERWISE = (
    "adaptive_max_pool1d alpha_dropout alpha_dropout_ batch_norm binary_cross_entropy_with_logits "
    "constant_pad_nd cosine_embedding_loss ctc_loss dropout dropout_ embedding "
    "feature_alpha_dropout feature_alpha_dropout_ feature_dropout feature_dropout_ "
    "hinge_embedding_loss instance_norm kl_div margin_ranking_loss poisson_nll_loss "
    "triplet_margin_loss"
)
PRINTING = "get_printoptions printoptions set_printoptions"
NAMESPACES = (
    "array_api compat cuda distributed fft func linalg nn optim optimize scipy show special"
)


def deferred_names() -> dict[str, str]:
    """Each name with the module that has it, below the package; none for a module itself."""
    found = {name: f"transforms.{m}" for m, names in TRANSFORMS.items() for name in names.split()}
    found["profile"], found["explain"] = "show.profiler", "njit.explanation"
    found["jit"], found["max_pool1d_with_indices"] = "compiler.front.jit", "nn.pooling_places"
    found |= dict.fromkeys(PRINTING.split(), "base.printing")
    found |= dict.fromkeys(NETWORKS.split(), "nn.functional")
    found |= dict.fromkeys(OTHERWISE.split(), "nn.top_level")
    return found | dict.fromkeys(NAMESPACES.split(), "")
