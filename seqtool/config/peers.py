"""What other toolkits call a setting or an option, for the suggestions that messages make.

The words are those of fairseq, OpenNMT, Marian, Joey NMT and Hugging Face, with underscores in the place of hyphens.
"""

from collections.abc import Collection

from seqtool.config.configuration import section_classes
from seqtool.config.model import DEFAULT_KIND

WORDS = {
    "train.lr": "learning_rate learn_rate base_lr peak_lr",
    "train.warmup": "warmup_steps warmup_updates lr_warmup learning_rate_warmup num_warmup_steps",
    "train.schedule": "lr_scheduler lr_scheduler_type scheduler scheduling decay_method lr_decay_strategy",
    "train.batch_tokens": "batch_size max_tokens batch_type mini_batch mini_batch_words mini_batch_fit "
    "train_batch_size per_device_train_batch_size per_device_eval_batch_size max_batch_size batchsize batch_words",
    "train.micro_tokens": "update_freq accum_count gradient_accumulation_steps optimizer_delay batch_multiplier",
    "train.steps": "max_update max_updates train_steps max_steps num_steps total_steps num_updates updates "
    "after_batches iterations",
    "train.epochs": "epoch max_epoch max_epochs num_epochs num_train_epochs after_epochs",
    "train.minutes": "stop_time_hours max_time time_limit",
    "train.patience": "early_stopping early_stopping_patience early_stop",
    "train.metric": "metric_for_best_model best_checkpoint_metric early_stopping_metric early_stopping_criteria "
    "eval_metric valid_metrics",
    "train.validate_every": "validate_interval validate_interval_updates valid_steps valid_freq validation_freq "
    "eval_steps eval_every eval_interval",
    "train.save_every": "save_interval save_interval_updates save_checkpoint_steps save_steps save_freq",
    "train.keep": "keep_last_epochs keep_interval_updates keep_checkpoint save_total_limit keep_best_ckpts "
    "keep_last_ckpts",
    "train.average": "average_checkpoints avg_checkpoints",
    "train.report_every": "log_interval logging_steps logging_freq log_every disp_freq print_every",
    "train.label_smoothing": "label_smoothing_factor smoothing",
    "train.clip_norm": "max_grad_norm clip_grad_norm clip_gradients gradient_clipping",
    "train.ema": "ema_decay exponential_smoothing average_decay moving_average",
    "train.optimizer": "optim optimizer_name",
    "train.beta1": "adam_beta1 adam_betas",
    "train.beta2": "adam_beta2",
    "train.precision": "fp16 bf16 mixed_precision model_dtype dtype",
    "train.threads": "cpu_threads num_threads",
    "train.device": "gpu use_cuda no_cuda cuda use_gpu",
    "train.activation_checkpointing": "gradient_checkpointing checkpoint_activations",
    "train.tensorboard": "tensorboard_logdir report_to tensorboard_log",
    "model.kind": "arch model_type architecture encoder_type decoder_type",
    "model.d_model": "hidden_size embed_dim embedding_dim encoder_embed_dim decoder_embed_dim dim_emb rnn_size "
    "word_vec_size model_dim",
    "model.d_ff": "ffn ffn_dim ffn_size ff_size ff_dim d_ffn transformer_ff transformer_dim_ffn feed_forward_size "
    "intermediate_size dim_feedforward encoder_ffn_dim decoder_ffn_dim encoder_ffn_embed_dim decoder_ffn_embed_dim",
    "model.n_heads": "heads num_heads nhead n_head transformer_heads num_attention_heads encoder_attention_heads "
    "decoder_attention_heads",
    "model.encoder_layers": "layers num_layers n_layers enc_layers enc_depth num_encoder_layers",
    "model.decoder_layers": "dec_layers dec_depth num_decoder_layers",
    "model.dropout": "dropout_rate hidden_dropout transformer_dropout",
    "model.share_embeddings": "share_all_embeddings tied_embeddings tied_embeddings_all tie_word_embeddings "
    "share_decoder_input_output_embed tied_softmax",
    "model.positions": "position_encoding pos_encoding",
    "tokenizer.vocab_size": "vocab dim_vocabs src_vocab_size tgt_vocab_size bpe_size bpe_operations num_operations "
    "voc_limit",
    "tokenizer.joint": "joined_dictionary joint_vocab share_vocab joint_bpe",
    "data.max_tokens": "max_source_positions max_target_positions max_sent_length src_seq_length tgt_seq_length "
    "max_source_length max_target_length",
    "data.workers": "num_workers dataloader_num_workers",
    "decode.beam": "beam_size num_beams beams beam_width",
    "decode.length_penalty": "lenpen alpha normalize len_pen",
    "decode.max_length_ratio": "max_len max_len_a max_len_b max_length max_new_tokens max_output_length "
    "max_decoding_length",
    "--n-best": "nbest num_return_sequences num_hypotheses",
    "--sample": "do_sample sampling random_sampling",
    "--top-k": "sampling_topk random_sampling_topk topk",
    "--top-p": "sampling_topp topp",
    "--from": "finetune_from_model pretrained_model pretrained load_model init_checkpoint fine_tune finetune",
    "-o": "save_dir save_model output_dir model_dir out_dir",
    "-m": "checkpoint model_path path ckpt models",
    "--quiet": "no_progress_bar disable_tqdm silent",
    "--log-file": "logfile log logging_dir",
    "--valid": "validpref dev dev_set validation valid_sets validation_file eval_dataset",
    "--test-set": "testset",
}
SENTENCES = {
    "the same command again continues where it stopped; --fresh starts over": "resume resume_from_checkpoint continue "
    "restore_file train_from reload restart load_checkpoint auto_resume",
    "several GPUs: torchrun --nproc-per-node N -m seqtool train ...": "gpus num_gpus n_gpu n_gpus gpu_ranks world_size "
    "devices distributed_world_size",
}
OPTIONS = {  # what stands for a setting, in the commands that have it
    "decode.beam": "--beam",
    "decode.length_penalty": "--length-penalty",
    "decode.max_length_ratio": "--max-length-ratio",
    "train.batch_tokens": "--batch-tokens",
    "train.device": "--device",
    "train.precision": "--compute-type",
    "train.steps": "--steps",
    "train.minutes": "--minutes",
    "train.threads": "--threads",
}
COMMANDS = {
    "translate": "generate interactive decode predict infer inference decoder",
    "train": "fit finetune fine_tune learn trainer",
    "prepare": "preprocess build_vocab binarize clean",
    "eval": "evaluate test sacrebleu scorer validate",
    "tokenizer": "tokenize spm_train subword_nmt",
    "average": "average_checkpoints average_models",
    "export": "convert",
    "serve": "server",
}
KNOWN = {word: name for name, words in WORDS.items() for word in words.split()}
SAID = {word: sentence for sentence, words in SENTENCES.items() for word in words.split()}
KNOWN_COMMANDS = {word: name for name, words in COMMANDS.items() for word in words.split()}


def find_setting(word: str) -> str | None:
    """Return the setting, as section.key, that a word of another toolkit or a key alone means."""
    word = word.lstrip("-").replace("-", "_").lower()
    if word in KNOWN:
        return KNOWN[word] if "." in KNOWN[word] else None
    for section, part in section_classes(DEFAULT_KIND).items():
        if word in part.__dataclass_fields__:
            return f"{section}.{word}"
    return None


def advise_command(name: str) -> str:
    """Return the command that other toolkits call by a name, or nothing."""
    command = KNOWN_COMMANDS.get(name.replace("-", "_").lower())
    return f"did you mean 'seqtool {command}'?" if command else ""


def advise(option: str, options: Collection[str]) -> str:
    """Return what to write in the place of an option that a command has not, or nothing; `options` are those it has."""
    word = option.lstrip("-").replace("-", "_").lower()
    if word in SAID:
        return SAID[word] if "--fresh" in options else ""
    if KNOWN.get(word) in options:
        return f"did you mean {KNOWN[word]}?"
    setting = find_setting(option)
    if setting is None:
        return ""
    if OPTIONS.get(setting) in options:
        return f"did you mean {OPTIONS[setting]}?"
    return f"did you mean --set {setting}=...?" if "--set" in options else ""
